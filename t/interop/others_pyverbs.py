"""Runs the tests that pyverbs has of the CM: pyverbs.py FOLDER --dev DEVICE. FOLDER/tests has them."""
import os
import sys
import unittest

folder = sys.argv.pop(1)
sys.path[0:0] = [folder, folder + "/tests"]

from args_parser import parser

parser.parse_args()

from tests import base, test_rdmacm


# They look for the address in sysfs, where rxe and siw have no network device below theirs.
def give_address(self, dev, port, index):
    self.args.append([dev, port, index, os.environ["EVR_IP4"], "00:00:00:00:00:00"])


base.RDMATestCase._get_ip_mac = give_address
unittest.main(module=test_rdmacm, verbosity=2)
