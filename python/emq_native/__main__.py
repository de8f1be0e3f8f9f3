"""`python -m emq_native` is the command `emq-native`."""

from emq_native.cli import main

if __name__ == "__main__":
    main()
