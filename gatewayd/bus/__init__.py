"""Bus: carries events between the processes of one gateway."""
