#!/bin/sh
# After an installation or a removal: systemd reads its units again. The operator
# decides whether Weir starts: systemctl enable --now weir.socket weir.service
set -e
if [ -z "$DPKG_ROOT" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
