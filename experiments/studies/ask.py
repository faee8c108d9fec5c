"""What the scripts of studies ask moeline, the program that they are given."""
import json
import subprocess
import sys


def ask(*arguments, changes=()):
    """Its JSON, with --set for each of the changes. Ends with its message where it refuses."""
    options = [word for change in changes for word in ("--set", change)]
    done = subprocess.run([sys.argv[1], *arguments, *options, "--format", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)
