"""`python -m rigctl`: the command line, where its script is not on the path."""

import sys

from rigctl.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
