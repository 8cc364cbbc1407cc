"""The names of each family of operators, from the lines `FAMILY > PARTS OF THE INDEX: NAMES` of `operator_index.txt`."""

from collections import defaultdict
from importlib.machinery import SourceFileLoader

FAMILIES: defaultdict[str, dict[str, str]] = defaultdict(dict)
"""The names, by family and parts of the index."""

_text = SourceFileLoader(__name__, __file__).get_data(f"{__file__.removesuffix('.py')}.txt").decode("ascii")

for _line in _text.splitlines():
    _family, _, _declared = _line.partition(" > ")
    _parts, _, _names = _declared.partition(": ")
    FAMILIES[_family][_parts] = _names
