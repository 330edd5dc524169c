"""When a prefix is run, saved or restored. Which files are saved: kernel/providers/docker/saved_files.

The first trial with a prefix (SUPER, section 3.2) saves the files of its sandbox after the first steps that
leave nothing but files. Later trials start from these files and run the other steps. A snapshot is named by
everything that its files depend on, and contains nothing that an agent did.
"""
