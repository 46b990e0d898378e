export function log() { return { settings: () => [], take() {}, show() {} } }
