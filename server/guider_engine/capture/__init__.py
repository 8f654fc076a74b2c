"""Running a program under watch: what it trains, on what it is tested, and which lines construct the layers."""
