"""Does a task keep out an agent that knows what is expected and does not do the work?"""
