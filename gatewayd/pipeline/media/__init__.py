"""Requests for images, speech, transcripts, moderations and sorted documents."""
