from support.worlds import world

__all__ = ["world"]
