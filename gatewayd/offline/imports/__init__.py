"""Import of the records of Open WebUI: reads its database, decides record by record, and stores.

A record is stored whole or not at all, and one that is here already is never changed: an import that was
interrupted goes on when it is run again, and a further run does nothing.
"""
