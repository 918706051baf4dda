"""Turns the end of a command into its exit code and, for an error, one sentence on standard error."""

from __future__ import annotations

import sys

from ctxchat.core.errors import CtxchatError, UsageError

TYPE_CHECKING = False  # without the import: this is loaded before the first frame
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAULTS_FILE = "errors.log"
"""The log of unexpected errors, in the data folder."""


READER_GONE = 141
"""The exit code where the reader of our output has closed it (`| head -1`): 128 plus the number of SIGPIPE, as shells expect."""


def escape_what_cannot_be_written() -> None:
    """Write characters that the encoding of our output lacks as JSON escapes (`\\u20ac`): JSON keeps its meaning, and of a text
    nothing is lost."""
    import codecs
    import io

    def escaped(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass").hex()
        return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), error.end

    codecs.register_error("json-escapes", escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="json-escapes")


def ended(work: Callable[[], int]) -> int:
    """The exit code of `work`, whatever it raises: 1 failed, 2 wrong usage or configuration, 130 interrupted, `READER_GONE`."""
    try:
        code = work()
        if sys.stdout and not sys.stdout.closed:
            sys.stdout.flush()  # so that a failing write is reported here, not by Python at exit
        return code
    except CtxchatError as problem:
        _print_error(str(problem))
        return 2 if isinstance(problem, UsageError) else 1
    except KeyboardInterrupt:
        return 130
    except Exception as fault:
        if isinstance(fault, OSError) and _output_is_full(fault):
            if isinstance(fault, BrokenPipeError):
                return READER_GONE
            _print_error(f"Standard output: {fault.strerror}.")
            return 1
        _print_error(written_down(fault))
        return 1


def _output_is_full(fault: OSError) -> bool:
    """Whether the error came from writing to standard output. If so, that is redirected to nowhere, as Python would write again
    at exit."""
    import errno
    import os

    if fault.filename is not None or fault.errno not in {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EPIPE,
        errno.EBADF,
    }:
        return False
    try:
        sys.stdout.flush()
        print(flush=True)  # the failed text is dropped from the buffer: only a new write shows that output fails
    except OSError as again:
        if again.errno == fault.errno:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return True
    return False


def written_down(fault: Exception) -> str:
    """Log an unexpected exception. Returns a sentence on it and where the log is."""
    return f"{_sentence(fault)} {_log_fault(fault)}"


def _sentence(fault: Exception) -> str:
    from ctxchat.core.secrets import masked

    words = " ".join(masked(str(fault)).split())[:300]
    return f"This should not have happened: {type(fault).__name__}{f': {words}' if words else ''}."


def _log_fault(fault: Exception) -> str:
    import logging
    import time
    import traceback

    from ctxchat.config import paths
    from ctxchat.core.secrets import masked

    if logging.root.handlers:  # without a handler it would be printed on the screen
        logging.getLogger("ctxchat").error("A fault of ours.", exc_info=fault)
    log = paths.data_dir() / FAULTS_FILE
    text = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {sys.argv[1:2]}\n{''.join(traceback.format_exception(fault))}\n"
    try:
        _append(log, masked(text))
    except OSError:
        return "It could not be written down, for the data folder cannot be written."
    return f"The details are in {log}; please report them."


def _append(log: Path, text: str) -> None:
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    log.touch(mode=0o600)
    with log.open("a", encoding="utf-8") as out:
        out.write(text)


def _print_error(text: str) -> None:
    from ctxchat.core.sanitize import clean
    from ctxchat.core.secrets import masked

    print(clean(f"ctxchat: {masked(text)}"), file=sys.stderr)
