# SPDX-License-Identifier: BSD-3-Clause
"""
A simulated fabric that configures itself (no subnet manager: it is there in some milliseconds), faults and jobs on it.
With faults given by time before the job begins, runs repeat to the last digit.
"""
import os, re, shutil, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(ROOT, "build"))


class Failure(Exception):
    pass


class Fabric:
    def __init__(self, topology, model, seed=None):
        """seed: of the packets that lossy links lose, instead of the model's"""
        self.home = tempfile.mkdtemp(prefix="fabric.")
        if seed is not None:
            model = self.seeded(model, seed)
        self.env = {**os.environ, "SIMFAB_DIR": self.home}
        self.env["PATH"] = os.path.join(BUILD, "bin") + ":" + self.env["PATH"]
        self.env.setdefault("MRMPI_LOG_LEVEL", "2")
        self.log = open(os.path.join(self.home, "engine.log"), "w")
        ready, w = os.pipe()
        self.engine = subprocess.Popen(
            ["simfab-engine", "--topology", topology, "--model", model, "--dir", self.home, "--static-subnet", "0",
             "--ready-fd", str(w)], env=self.env, pass_fds=[w], stderr=self.log)
        os.close(w)
        came = os.read(ready, 16)
        os.close(ready)
        if not came.startswith(b"ready"):
            self.__exit__()
            raise Failure("the fabric does not come up")

    def seeded(self, model, seed):
        path = os.path.join(self.home, "model.yaml")
        with open(model) as given, open(path, "w") as own:
            own.write(given.read() + f"fault:\n  seed: {seed}\n")
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.engine.terminate()
        self.engine.wait()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def run(self, *argv):
        done = subprocess.run(argv, env=self.env, capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(argv)}: {done.stderr}")
        return done.stdout

    def fault(self, words):
        """words of `simfab fault`; what is in quotes is one"""
        self.run("simfab", "fault", *(a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', words)))

    def job(self, ranks, argv, env, seconds=30, ppn=0):
        """On two hosts, or with so many ranks on each. Returns the exit status and what it said."""
        done = subprocess.run(
            ["timeout", "-k", "5", str(seconds), "mrrun", "-n", str(ranks), "--ppn", str(ppn or ranks // 2), "--stats", *argv],
            env={**self.env, **env}, stdin=subprocess.DEVNULL, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, errors="replace")
        return done.returncode, done.stdout
