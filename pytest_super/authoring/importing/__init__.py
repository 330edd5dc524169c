"""Task files from the published data of SUPER."""
