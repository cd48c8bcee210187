# SPDX-License-Identifier: Apache-2.0
"""Addresses: which network each belongs to, and who may send a request there.

A def-file's URL may lead to public addresses, a callback's to private ones too.
"""

from __future__ import annotations

import pytest

from container_update.package.fetch import Network, network_of

PUBLIC, PRIVATE, OFF_LIMITS = Network.PUBLIC, Network.PRIVATE, Network.OFF_LIMITS

ADDRESSES = {
    # the internet
    "93.184.216.34": PUBLIC,
    "192.0.32.8": PUBLIC,
    "2606:2800:220:1::1": PUBLIC,
    # a site's own
    "10.1.2.3": PRIVATE,
    "172.16.0.1": PRIVATE,
    "172.31.255.255": PRIVATE,
    "172.32.0.1": PUBLIC,
    "192.168.1.1": PRIVATE,
    "fd00::1": PRIVATE,
    "fec0::1": PRIVATE,
    # this host and its link
    "127.0.0.1": OFF_LIMITS,
    "127.8.8.8": OFF_LIMITS,
    "::1": OFF_LIMITS,
    "0.0.0.0": OFF_LIMITS,
    "0.1.2.3": OFF_LIMITS,
    "::": OFF_LIMITS,
    "169.254.169.254": OFF_LIMITS,
    "fe80::1": OFF_LIMITS,
    "fe80::1%eth0": OFF_LIMITS,
    # a carrier's customers
    "100.64.0.1": OFF_LIMITS,
    "100.127.255.255": OFF_LIMITS,
    "100.128.0.1": PUBLIC,
    # groups
    "224.0.0.1": OFF_LIMITS,
    "232.1.1.1": OFF_LIMITS,
    "255.255.255.255": OFF_LIMITS,
    "ff02::1": OFF_LIMITS,
    "ff0e::1": OFF_LIMITS,
    # reserved, for documentation, for measurements
    "240.0.0.1": OFF_LIMITS,
    "192.0.0.8": OFF_LIMITS,
    "192.0.2.1": OFF_LIMITS,
    "198.18.0.1": OFF_LIMITS,
    "203.0.113.1": OFF_LIMITS,
    "2001:db8::1": OFF_LIMITS,
    "3fff::1": OFF_LIMITS,
    # IPv4-mapped, and what was before it
    "::ffff:93.184.216.34": PUBLIC,
    "::ffff:10.0.0.1": PRIVATE,
    "::ffff:127.0.0.1": OFF_LIMITS,
    "::ffff:169.254.169.254": OFF_LIMITS,
    "::ffff:100.64.0.1": OFF_LIMITS,
    "::127.0.0.1": OFF_LIMITS,
    "::ffff:0:127.0.0.1": OFF_LIMITS,
    # 6to4
    "2002:5db8:d822::": PUBLIC,
    "2002:a00:1::": PRIVATE,
    "2002:7f00:1::": OFF_LIMITS,
    # Teredo: the last 32 bits are the address, inverted
    "2001:0:4136:e378:8000:63bf:a247:27dd": PUBLIC,
    "2001:0:4136:e378:8000:63bf:f5ff:fffe": PRIVATE,
    "2001:0:4136:e378:8000:63bf:80ff:fffe": OFF_LIMITS,
    # NAT64, and the one that a site may place anywhere
    "64:ff9b::5db8:d822": PRIVATE,
    "64:ff9b::a00:1": PRIVATE,
    "64:ff9b::7f00:1": OFF_LIMITS,
    "64:ff9b::a9fe:a9fe": OFF_LIMITS,
    "64:ff9b::6440:1": OFF_LIMITS,
    "64:ff9b:1::a00:1": OFF_LIMITS,
}


@pytest.mark.parametrize(("address", "network"), ADDRESSES.items())
def test_an_address_belongs_to_one_network(address: str, network: Network) -> None:
    assert network_of(address) is network


@pytest.mark.parametrize("text", ["", "nfvo", "localhost", "127.1", "0x7f.1", "1.2.3.4.5"])
def test_a_name_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        network_of(text)
