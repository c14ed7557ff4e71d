"""Object stores, through the library obstore (extra `object-store`)."""
