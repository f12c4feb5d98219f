"""A Slurm of one node in a temporary folder: munged, MariaDB, slurmdbd, slurmctld and slurmd.

A keeper ends them when it is told to or the tests are no more, however these end: `python -m helpers.slurm`.
"""

import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PROGRAMS = (
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "slurmdbd",
    "slurmctld",
    "slurmd",
    "sacctmgr",
    "sacct",
)
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # where Debian keeps daemons
CONTROLLER = """\
ClusterName=jioc
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={d}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0,bf_interval=1
MinJobAge=300
KillWait=30
ReturnToService=2
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
AccountingStoragePass={folder}/munge/socket
JobRequeue=1
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""
ACCOUNTING = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser={user}
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm
"""


class Unavailable(Exception):
    """Why no Slurm can be started here."""


class Slurm:
    """The daemons, each a child of this process, and their keeper."""

    def __init__(self, folder: Path):
        self.folder, self.daemons = folder, list[subprocess.Popen[bytes]]()
        missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
        if missing:
            raise Unavailable(
                f"{', '.join(missing)} not installed: apt-get install slurm-wlm slurmdbd mariadb-server"
            )
        for name in ("munge", "state", "spool", "sql"):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)  # munged wants to reach its socket
        names = ("ctld", "d", "dbd", "sql")
        self.values = {
            "host": socket.gethostname().split(".")[0], "user": getpass.getuser(), "folder": folder,
            "password": secrets.token_hex(16), **dict(zip(names, free_ports(4), strict=True)),
        }  # fmt: skip
        self.env = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": PATH}
        self.keeper = subprocess.Popen(
            [sys.executable, "-m", "helpers.slurm", str(folder)],
            stdin=subprocess.PIPE, cwd=Path(__file__).parents[1], start_new_session=True,
        )  # fmt: skip
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def version(self) -> str:
        return self.ask("slurmctld", "-V")

    def ask(self, *command: str) -> str:
        """What a command of Slurm's answers."""
        try:
            env = os.environ | self.env
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{command[0]} does not answer") from None
        except OSError as error:
            raise Unavailable(f"{command[0]} cannot be run: {error.strerror}") from None
        if done.returncode:
            raise Unavailable(f"{command[0]} said {(done.stderr or done.stdout).strip()!r}")
        return done.stdout.strip()

    def end_jobs(self) -> None:
        """End what a test that failed has left in the queue and at work."""
        with suppress(Unavailable):
            self.ask("scancel", f"--user={getpass.getuser()}")
        kill(self.folder, b"SLURM_JOB_ID=")

    def stop(self) -> None:
        """End the daemons and the jobs, and remove their folder."""
        self.keeper.communicate()
        for daemon in self.daemons:
            daemon.wait()

    # --- the daemons, each once those that it needs answer ---

    def _start(self) -> None:
        self._munge()
        self._database()
        self._write("slurmdbd.conf", ACCOUNTING)
        self._write("slurm.conf", CONTROLLER)
        self._daemon("slurmdbd", "-D")
        self._until(lambda: self.ask("sacctmgr", "-i", "add", "cluster", "jioc"), "slurmdbd")
        self.ask("sacctmgr", "-i", "add", "account", "lab")
        self.ask("sacctmgr", "-i", "add", "user", getpass.getuser(), "account=lab")
        self._daemon("slurmctld", "-D")
        self._until(lambda: self.ask("scontrol", "ping"), "slurmctld")
        self._daemon("slurmd", "-D", "-N", str(self.values["host"]))
        self._until(lambda: self.ask("srun", "true"), "slurmd")

    def _munge(self) -> None:
        folder = self.folder / "munge"
        (folder / "key").write_bytes(secrets.token_bytes(128))
        (folder / "key").chmod(0o400)
        files = [("key", "key"), ("socket", "socket"), ("pid", "pid"), ("log", "log"), ("seed", "seed")]
        words = [f"--{flag}{'' if flag == 'socket' else '-file'}={folder / name}" for flag, name in files]
        self._daemon("munged", "--foreground", "--force", *words)
        self._until(lambda: self.ask("munge", "-n", f"--socket={folder / 'socket'}"), "munged")

    def _database(self) -> None:
        data, port = self.folder / "sql" / "data", self.values["sql"]
        user = f"--user={getpass.getuser()}"
        self.ask("mariadb-install-db", "--no-defaults", f"--datadir={data}", user, "--skip-test-db",
                 "--auth-root-authentication-method=normal")  # fmt: skip
        where = f"--socket={self.folder / 'sql' / 's'}"
        self._daemon("mariadbd", "--no-defaults", f"--datadir={data}", user, where, f"--port={port}",
                     "--bind-address=127.0.0.1", f"--pid-file={self.folder / 'sql' / 'pid'}",
                     "--innodb-lock-wait-timeout=900")  # fmt: skip
        user = f"slurm@'%' identified by '{self.values['password']}'"
        made = f"create user {user}; grant all on slurm.* to slurm@'%'"
        self._until(lambda: self.ask("mariadb", "--no-defaults", where, "-u", "root", "-e", made), "mariadbd")

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text.format(**self.values))
        (self.folder / name).chmod(0o600 if name == "slurmdbd.conf" else 0o644)

    def _daemon(self, *command: str) -> None:
        with open(self.folder / f"{command[0]}.out", "wb") as out:
            self.daemons.append(
                subprocess.Popen(command, env=os.environ | self.env, stdout=out, stderr=subprocess.STDOUT)
            )

    def _until(self, answers: Callable[[], str], name: str, seconds: float = 60) -> None:
        """Wait until the daemon that was started last answers."""
        end = time.monotonic() + seconds
        while True:
            try:
                answers()
                return
            except Unavailable as why:
                if self.daemons[-1].poll() is not None or time.monotonic() > end:
                    said = (self.folder / f"{name}.out").read_text(errors="replace").strip().splitlines()
                    raise Unavailable(f"{name} does not answer: {why}; {' '.join(said[-2:])}") from None
                time.sleep(0.2)


def free_ports(n: int) -> list[int]:
    """Ports that nothing listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def kill(folder: Path, variable: bytes = b"") -> int:
    """Kill the processes whose variables name the folder's Slurm, and have that one too; return how many."""
    ours, killed = f"SLURM_CONF={folder / 'slurm.conf'}".encode(), 0
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            variables = path.read_bytes().split(b"\0")
            if ours in variables and any(one.startswith(variable) for one in variables):
                os.kill(int(path.parent.name), signal.SIGKILL)
                killed += 1
    return killed


def keep(folder: Path) -> None:
    """Wait until the tests close standard input, or end; then end everything and remove the folder."""
    sys.stdin.read()
    while kill(folder):
        time.sleep(0.05)
    shutil.rmtree(folder)


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
