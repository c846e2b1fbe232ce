# SPDX-License-Identifier: BSD-3-Clause
"""
A fabricd on each host of the fabric that this runs in: that of the first host applies the policy and verifies it, the
others compare it with their ports. Then jobs can be given classes.
"""
import os, subprocess, time

SECONDS = 60  # real, for a daemon to come up and verify

OPENSM = """opensm:
  config: $SIMFAB_DIR/opensm/opensm.conf
  pid_file: $SIMFAB_DIR/opensm/opensm.pid
  restart: simfab opensm restart
verify: {interval: 0}
"""


class Failed(Exception):
    """with what the daemon, or fabricctl, said"""


def socket(host):
    return os.path.join(os.environ["SIMFAB_DIR"], f"fabricd-{host}.sock")


def ctl(host, *words):
    """The answer of fabricctl, or Failed"""
    done = subprocess.run(["fabricctl", "--socket", socket(host), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"fabricctl {' '.join(words)} on {host}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def answers(host, wanted):
    try:
        return wanted in ctl(host, "status")
    except Failed:
        return False


class Daemons:
    def __init__(self, policy, tmp):
        self.running, self.tmp = [], tmp
        self.hosts = subprocess.run(["simfab", "status", "--hosts"], capture_output=True, text=True, check=True).stdout.split()
        self.policy = os.path.join(tmp, "policy.yaml")
        with open(self.policy, "w") as f:
            f.write(policy)

    def __enter__(self):
        try:
            first, *others = self.hosts
            self.start(first, OPENSM)
            self.wait(first, "")
            ctl(first, "policy", "apply", self.policy)
            for host in others:
                self.start(host, f"policy: {self.policy}\nverify: {{interval: 0}}\n")
            for host in self.hosts:
                self.wait(host, "state: verified")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in self.running:
            daemon.terminate()
        for daemon in self.running:
            daemon.wait()

    def log(self, host):
        return os.path.join(self.tmp, f"fabricd-{host}.log")

    def start(self, host, more):
        config = os.path.join(self.tmp, f"fabricd-{host}.yaml")
        with open(config, "w") as f:
            f.write(f"state: {self.tmp}/state-{host}\nsocket: {socket(host)}\n{more}")
        with open(self.log(host), "w") as log:
            self.running.append(subprocess.Popen(["simfab", "exec", "--real-clock", host, "--", "fabricd", "--config", config],
                                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def wait(self, host, wanted):
        end = time.monotonic() + SECONDS
        while not answers(host, wanted):
            if time.monotonic() > end:
                with open(self.log(host)) as f:
                    raise Failed(f"fabricd on {host} does not say \"{wanted}\": {f.read()[-400:]}")
            time.sleep(0.02)

    def set_class(self, job, name):
        for host in self.hosts:
            ctl(host, "job", "set", job, name, "--user", str(os.getuid()))
