"""Import a user's Python file, with a method or a data set: once, and again when it has changed."""

import hashlib
import sys
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from jioc.errors import Refused

_importing = threading.RLock()
SCRIPT = "jioc_script_"  # the names of such modules begin so


def imported(path: Path) -> ModuleType:
    """Import the file as a module. Its name holds the file's path, time and size."""
    about = path.stat()
    name = f"{SCRIPT}{path.resolve()}:{about.st_mtime_ns}:{about.st_size}"
    with _importing:
        if name not in sys.modules:
            source = spec_from_file_location(name, path)
            assert source is not None
            module = sys.modules[name] = module_from_spec(source)
            try:
                # not by the loader, whose bytecode cache misses changes within one second
                content = path.read_bytes()
                exec(compile(content, str(path), "exec", dont_inherit=True), module.__dict__)
                module.__dict__["__sha256__"] = hashlib.sha256(content).hexdigest()
            except (Exception, SystemExit) as error:
                del sys.modules[name]
                raise Refused(f"{str(path)!r} cannot be imported: {type(error).__name__}: {error}") from error
        return sys.modules[name]
