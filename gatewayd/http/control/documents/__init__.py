"""Routes of files, collections and the ingestion queue on the control socket."""
