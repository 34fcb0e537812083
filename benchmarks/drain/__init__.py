"""How many pending deliveries a second are settled, beside plain psycopg and three job queues."""
