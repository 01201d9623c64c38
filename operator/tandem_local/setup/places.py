"""Where set-up puts what it makes: inside the repository what belongs to one checkout, in the cache what all of them share."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MODEL_NAME", "Places"]

MODEL_NAME = "SmolLM2-135M-Instruct"


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of set-up; none of them need exist."""

    repository: Path
    cache: Path
    user_binaries: Path | None
    """A folder the user named with TANDEM_BINARIES; what is in it is used before anything is downloaded or built."""

    @classmethod
    def find(cls, environ: Mapping[str, str]) -> "Places":
        """Return this checkout's places by the variables TANDEM_CACHE, XDG_CACHE_HOME, HOME and TANDEM_BINARIES."""
        repository = Path(__file__).resolve().parents[3]
        shared = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache"
        cache = Path(environ.get("TANDEM_CACHE") or Path(shared) / "tandem").absolute()
        named = environ.get("TANDEM_BINARIES")
        return cls(repository=repository, cache=cache, user_binaries=Path(named).absolute() if named else None)

    @property
    def venv(self) -> Path:
        """The checkout's own environment, with the project in it."""
        return self.repository / ".venv"

    @property
    def tools(self) -> Path:
        """Tools that set-up itself needs."""
        return self.repository / ".tools"

    @property
    def requirements(self) -> Path:
        """The locks."""
        return self.repository / "requirements"

    @property
    def go_modules(self) -> Path:
        """The Go modules from which the control plane is built."""
        return self.repository / "operator" / "tandem_local" / "go"

    @property
    def stubs(self) -> Path:
        """Generated gRPC code of the container runtime's interface."""
        return self.repository / "operator" / "tandem_local" / "stubs"

    @property
    def binaries(self) -> Path:
        """The control plane's programs."""
        return self.cache / "bin"

    @property
    def go(self) -> Path:
        """A Go toolchain from a package, where the machine has none that is new enough."""
        return self.cache / "go"

    @property
    def vllm(self) -> Path:
        """The environment of the engine."""
        return self.cache / "vllm"

    @property
    def model(self) -> Path:
        """The chat model that the demo and the tests serve."""
        return self.cache / "models" / MODEL_NAME

    @property
    def logs(self) -> Path:
        """One log for each step."""
        return self.cache / "logs"
