"""A stock torch, as far as validate/judge/pytests/python/identity.py asks: what a wrong environment puts in the way."""

__version__ = "2.6.0"


class version:
    git_version = "stock"


class mps:
    pass


class _C:
    pass


_C.__file__ = __file__
