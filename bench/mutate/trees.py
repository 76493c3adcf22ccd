"""Find where the measured trees come from: source distributions, by name and version, through pip."""

import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

KEPT = Path(__file__).resolve().parents[2] / "build" / "bench-trees"


@dataclass(frozen=True)
class Tree:
    """One project at one version; `inside` is the package that mutants are planted in."""

    project: str
    version: str
    inside: str

    def fetch(self) -> Path:
        """The unpacked package, downloaded once and kept in `build/bench-trees`."""
        here = KEPT / f"{self.project}-{self.version}"
        if not here.is_dir():
            KEPT.mkdir(parents=True, exist_ok=True)
            wanted = f"{self.project}=={self.version}"
            flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:"]
            pip = [sys.executable, "-m", "pip", "download", *flags, "--dest", str(KEPT / "sdists"), wanted]
            subprocess.run(pip, check=True, timeout=600)
            stem = self.project.replace(".", "_").replace("-", "_").lower()
            found = sorted((KEPT / "sdists").glob("*.tar.gz"))
            (archive,) = [
                path for path in found if path.name.lower().replace("-", "_").startswith(f"{stem}_{self.version}")
            ]
            with tarfile.open(archive) as packed:
                packed.extractall(KEPT / "unpacked", filter="data")
                top = packed.getnames()[0].split("/")[0]
            (KEPT / "unpacked" / top).rename(here)
        return here / self.inside


TREES = {
    "aiohttp": Tree("aiohttp", "3.14.5", "aiohttp"),
    "discordpy": Tree("discord.py", "2.7.1", "discord"),
    "langgraph": Tree("langgraph", "1.2.20", "langgraph"),
    "prefect": Tree("prefect", "3.9.0", "src/prefect"),
}
