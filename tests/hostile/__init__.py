"""Files made to hang a reader, exhaust its memory or crash it with a traceback."""
