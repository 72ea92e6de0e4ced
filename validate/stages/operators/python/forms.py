"""The forms in which an entry of the operator database is run, and how they are combined.

A form says where the inputs come from, how they lie in memory, how the operator is called, on which stream, and who reads
the result. Its name is a word of FORMS, or several with "+" between them; "group:NAME" runs the entry NAME beside it.
"""

import dataclasses

FORMS = {
    "basic": {},
    "backward": {"call": "backward"},
    "out": {"call": "out"},
    "in-place": {"call": "in-place"},
    "shared": {"source": "shared"},
    "made-elsewhere": {"source": "maker"},
    "handed-on": {"delivery": "neighbour"},
    "strided": {"layout": "strided"},
    "first-work": {"source": "shared", "thread": "fresh"},
    "streams": {"stream": "explicit"},
}


@dataclasses.dataclass
class Form:
    name: str
    call: str = "plain"  # backward: the gradients as well; out: into tensors that are there; in-place: the method with "_"
    source: str = "own"  # each thread makes its inputs; shared: the main thread made them; maker: another thread makes them
    layout: str = "dense"  # strided: every input is a view with an offset and stride 2
    thread: str = "long"  # fresh: the operator is the first that its thread does on the device
    stream: str = "thread"  # the thread's own; explicit: one that the thread makes
    delivery: str = "self"  # neighbour: another thread reads the result, with no synchronisation
    partner: str = ""  # the entry that runs beside it


def parse(name):
    """The form of this name. Raises ValueError for an unknown word, and for words of which one takes back another's choice."""
    form = Form(name)
    chosen = {}
    for word in name.split("+"):
        if word.startswith("group:"):
            chosen.setdefault("partner", word.removeprefix("group:"))
            continue
        if word not in FORMS:
            raise ValueError(f"there is no form {word!r}; there are {', '.join(FORMS)}, group:NAME")
        for field, value in FORMS[word].items():
            if chosen.setdefault(field, value) != value:
                raise ValueError(f"form {name}: {field} cannot be both {chosen[field]} and {value}")
    return dataclasses.replace(form, **chosen)


def why_not(form, entry, has_streams):
    """Why an entry has no such form, or an empty text."""
    if form.call == "out" and not entry.supports_out:
        return "no out="
    if form.call == "in-place" and entry.get_inplace() is None:
        return "no in-place variant"
    if form.call == "backward" and not entry.supports_autograd:
        return "no backward"
    if form.stream == "explicit" and not has_streams():
        return "this torch makes no streams for mps"
    return ""
