"""A real Redis."""

from tests.fakes.daemons.redis_server import redis as redis
