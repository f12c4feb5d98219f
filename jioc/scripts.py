"""Import a user's Python file, with a method or a data set: once, and again when it has changed."""

import hashlib
import re
import sys
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from jioc.errors import Refused
from jioc.files import read_bytes

_importing = threading.RLock()
SCRIPT = "jioc_script_"  # the names of such modules begin so


def is_script(word: object) -> bool:
    """Whether a method or data set is named by a Python file, which is run when it is used."""
    return isinstance(word, str | Path) and Path(word).suffix == ".py"


def note(source: Path, script: object) -> str:
    """Say that a file of settings names a Python file; said before that is run."""
    return f"{str(source)!r} names the Python file {script!r}, which may be run"


def imported(path: Path) -> ModuleType:
    """Import the file as a module, whose name follows from the file's path, time and size.

    pickle takes an object that tells no module of its own, as torch.contiguous_format, from the first module
    that has it, and the compiler's cache pickles some. So the name is one that `import` takes, and the module
    comes after those that the file imports.
    """
    about = path.stat()
    identity = f"{path.resolve()}:{about.st_mtime_ns}:{about.st_size}".encode(errors="surrogateescape")
    stem = re.sub(r"\W", "_", path.stem)
    name = f"{SCRIPT}{stem}_{hashlib.sha256(identity).hexdigest()[:16]}"
    with _importing:
        if name not in sys.modules:
            source = spec_from_file_location(name, path)
            assert source is not None
            module = sys.modules[name] = module_from_spec(source)
            try:
                # not by the loader, whose bytecode cache misses changes within one second
                content = read_bytes(path)
                exec(compile(content, str(path), "exec", dont_inherit=True), module.__dict__)
                module.__dict__["__sha256__"] = hashlib.sha256(content).hexdigest()
                sys.modules[name] = sys.modules.pop(name)
            except (Exception, SystemExit) as error:
                del sys.modules[name]
                kind, why = type(error).__name__, f": {error}" if str(error) else ""
                raise Refused(f"{str(path)!r} cannot be imported: {kind}{why}") from error
        return sys.modules[name]
