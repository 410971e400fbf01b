#!/usr/bin/env python3
"""Writes `messages`: lines of a system log as rsyslog writes them, the same ones every time.

    python3 examples/failed_logins/generate.py [lines]
"""

import random
import sys
from pathlib import Path

random.seed(2017)
USERS = ["root", "admin", "anna", "bert", "backup"]
SERVICES = ["cron", "kernel", "systemd", "dhclient", "postfix/smtpd"]


def host():
    return f"203.0.113.{random.randrange(1, 255)}"


def failure():
    user = f"  user={random.choice(USERS)}" if random.random() < 0.8 else ""
    return (f"sshd[{random.randrange(900, 9999)}]: pam_unix(sshd:auth): authentication failure; "
            f"logname= uid=0 euid=0 tty=ssh ruser= rhost={host()}{user}")


def success():
    return f"sshd[{random.randrange(900, 9999)}]: Accepted publickey for {random.choice(USERS)} from {host()} port 22"


def su_failure():
    return (f"su[{random.randrange(900, 9999)}]: pam_unix(su:auth): authentication failure; "
            f"logname=anna uid=1000 euid=0 tty=pts/1 ruser=anna rhost=  user=root")


def other():
    return f"{random.choice(SERVICES)}[{random.randrange(900, 9999)}]: all is well"


def lines(count):
    second = 0
    for _ in range(count):
        second += random.randrange(1, 240)
        day, rest = divmod(second, 86400)
        clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        message = random.choices([failure, success, su_failure, other], [12, 8, 4, 76])[0]()
        yield f"Jun {day + 1:2} {clock} weir {message}"


count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
path = Path(__file__).parent / "messages"
path.write_text("".join(line + "\n" for line in lines(count)))
