"""What the service keeps: the database, its tables and history, secrets at rest."""
