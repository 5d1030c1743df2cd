include examples/tools/local.mk
