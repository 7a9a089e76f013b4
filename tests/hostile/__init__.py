"""Files that were made to hang a reader, to fill its memory or to end it with a traceback."""
