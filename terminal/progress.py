# SPDX-License-Identifier: BSD-3-Clause
"""A line about long work on standard error, if that is a terminal. Threads may share a Progress."""
import os, sys, threading


class Progress:
    def __init__(self):
        self.on = sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
        self.shown, self.lock = False, threading.RLock()

    def show(self, text):
        """Replaces the line before; cut to the width of the terminal"""
        if not self.on:
            return
        with self.lock:
            try:
                width = os.get_terminal_size(sys.stderr.fileno()).columns
            except OSError:
                width = 0
            print(f"\r\033[K{text[:(width or 80) - 1]}", end="", file=sys.stderr, flush=True)
            self.shown = True

    def erase(self):
        """Before anything else is written, and at the end"""
        with self.lock:
            if self.shown:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
            self.shown = False
