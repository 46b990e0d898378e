export function rules() { return { settings: () => [], take() {}, show() {} } }
