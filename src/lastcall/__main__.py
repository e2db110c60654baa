from lastcall.cli.main import main

main()
