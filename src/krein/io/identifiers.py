"""The different names of a sequence: whole identifier, accession, entry name, number.

FASTA headers of the public databases join several in one word (`sp|Q00000|PTPS_RAT`,
`gi|129295|ref|NP_990483.1|`); tables contain one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_JOINED = re.compile(
    r"(?:^|\|)(?:sp|tr|ref|gb|emb|dbj|tpg|tpe|tpd|pir|prf|lcl)\|([^|]*)(?:\|([^|]*))?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"gi\|(\d+)", re.IGNORECASE)
_VERSIONED = re.compile(r"([A-Za-z]\w*\d)\.\d+")


def whole(name: str) -> str:
    """Return the identifier unchanged."""
    return name


def accession(name: str) -> str:
    """Return the accession in an identifier; one without `|` is returned unchanged.

    >>> accession("sp|Q00000|PTPS_RAT"), accession("gi|129295|ref|NP_990483.1|")
    ('Q00000', 'NP_990483.1')
    """
    found = _JOINED.search(name)
    return found[1] if found and found[1] else name


def unversioned(name: str) -> str:
    """Return the accession without its version.

    >>> unversioned("ref|NP_990483.1|"), unversioned("Q00000")
    ('NP_990483', 'Q00000')
    """
    found = _VERSIONED.fullmatch(accession(name))
    return found[1] if found else accession(name)


def entry_name(name: str) -> str:
    """Return the entry name in an identifier; one without `|` is returned unchanged.

    >>> entry_name("tr|A0A000|A0A000_RAT")
    'A0A000_RAT'
    """
    found = _JOINED.search(name)
    return found[2] if found and found[2] else name


def gi_number(name: str) -> str:
    """Return the GI number of an identifier that begins with one.

    >>> gi_number("gi|129295|ref|NP_990483.1|")
    '129295'
    """
    found = _NUMBER.match(name)
    return found[1] if found else name


FORMS: tuple[Callable[[str], str], ...] = (whole, accession, unversioned, entry_name, gi_number)
"""Ways to shorten an identifier, the most exact first."""
