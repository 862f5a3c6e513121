"""How much to do. Three settings, read from the environment:

SLUICE_TEST_LONG=1        everything at the size that the issue asks for (1,000,000 documents, 200 kills, ...)
SLUICE_TEST_PROFILE       quick: the smallest sizes, slow clients left out; anything else: the middle sizes
SLUICE_TEST_BUDGET        seconds for the integration tests together (default 1200); middle sizes grow and shrink
                          with it
"""
import os

LONG = os.environ.get('SLUICE_TEST_LONG') == '1'
PROFILE = 'long' if LONG else os.environ.get('SLUICE_TEST_PROFILE') or 'full'
BUDGET = float(os.environ.get('SLUICE_TEST_BUDGET') or 1200)
QUICK = PROFILE == 'quick'


def size(full, ci, quick=None):
    """The count to use now: full in long runs, else a share."""
    if LONG:
        return full
    if QUICK:
        return quick if quick is not None else max(1, ci // 10)
    return max(quick or 1, min(full, int(ci * min(4.0, BUDGET / 1200))))
