from ._sonde import *
from ._sonde import __version__, zone, begin, end, session_start, session_stop
