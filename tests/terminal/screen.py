# SPDX-License-Identifier: BSD-3-Clause
"""
screen.py shown|left FILE: of the output of a command on a terminal ("script" wrote it), the lines about progress that
were shown on the way, or the lines that are left on the screen at the end.
"""
import re, sys

ERASE = "\r\x1b[K"
with open(sys.argv[2], newline="", errors="replace") as f:
    text = f.read()
if sys.argv[1] == "shown":
    for shown in re.findall(r"\r\x1b\[K([^\r\n\x1b]+)(?=\r\x1b\[K|$)", text):
        print(shown)
else:
    for line in text.replace("\r\n", "\n").split("\n"):
        print(line[line.rfind(ERASE) + len(ERASE):] if ERASE in line else line)
