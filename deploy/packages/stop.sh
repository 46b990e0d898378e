#!/bin/sh
# Before a removal, but not before an upgrade: deb says "upgrade", rpm says 1.
set -e
case "$1" in
upgrade | 1) exit ;;
esac
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl disable --now weir.socket weir.service
fi
