"""Worker processes: start, supervise and stop one or several processes on one port."""
