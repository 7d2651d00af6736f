"""The files of `.hoodie`: commits, plans, cleans, rollbacks, savepoints, and the archived timeline. Imports `encoding`."""
