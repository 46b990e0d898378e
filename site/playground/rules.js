// Your rules: which of them decide a request, and whether their tests hold.
const id = name => document.getElementById(name)

const first = {
  'rules-text': `rules:
  - name: login
    match: {path: /login}
    key: client
    limit: token bucket 5/m burst 5
  - name: api
    match: {path: /v1/*}
    except: {client: 10.0.0.0/8}
    key: client
    limit: 100/s and 10000/h
`,
  'rules-request': 'method=POST\npath=/login\nclient=192.0.2.1\n',
  'rules-tests': `rules: weir.yaml
tests:
  - name: the sixth log-in waits
    steps:
      - {request: {path: /login, client: 192.0.2.1}, times: 5, expect: allow}
      - {request: {path: /login, client: 192.0.2.1}, expect: deny, retry_after: 12s}
`,
}

export function rules({ engine, problem, Stopped, changed }) {
  let typed = 0, begun = false

  async function run() {
    changed([])
    const rules = id('rules-text').value, tests = id('rules-tests').value
    try {
      const [explained, results] = await Promise.allSettled([
        engine.ask('explain', { do: 'explain', rules, request: id('rules-request').value }),
        tests.trim() ? engine.ask('test', { do: 'test', rules, tests }) : [],
      ])
      const failed = [explained, results].filter(r => r.status === 'rejected').map(r => r.reason)
      if (failed.some(error => error instanceof Stopped)) return
      problem(id('rules-problem'), failed[0])
      const place = id('rules-answer')
      place.replaceChildren()
      if (explained.value) place.append(weir.element('h3', { textContent: 'How the request is decided' }), weir.element('pre', { textContent: explained.value.text }))
      if (results.value?.length) place.append(weir.element('h3', { textContent: 'The tests' }), tested(results.value))
      id('rules-text').toggleAttribute('aria-invalid', explained.status === 'rejected')
    } catch (error) {
      problem(id('rules-problem'), error)
    }
  }

  function tested(results) {
    return weir.element('ul', {}, ...results.map(r => weir.element('li', { className: r.failure ? 'refused' : '', textContent: `${r.failure ? 'fails' : 'holds'}: ${r.name}${r.failure ? `: ${r.failure}` : ''}` })))
  }

  for (const [name, text] of Object.entries(first)) {
    id(name).value = text
    id(name).addEventListener('input', () => { clearTimeout(typed); typed = setTimeout(run, 300) })
  }
  return { settings: () => [], take() {}, show() { if (!begun) { begun = true; run() } } }
}
