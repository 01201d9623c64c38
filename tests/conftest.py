"""What holds for the whole suite: generated examples are never judged by the clock, because machines are busy."""

from hypothesis import HealthCheck, settings

settings.register_profile("tandem", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tandem")
