// Your log: limits tried on an access log, or suggested for it. The log stays in the browser: the worker reads it slice by slice.
const id = name => document.getElementById(name)
const targets = ['refuse 0.1% of clients', 'refuse 0.1% of requests', 'spare 99.9%', 'at most 200/s in all']
const first = 'token bucket 1/s burst 10\nsliding window 60/1m'

export function log({ engine, problem, Stopped, changed }) {
  let file = null, asked = null

  const settings = () => [...id('log-limits').value.split('\n').filter(line => line.trim()).map(line => ['limit', line.trim()]), ['suggest', id('log-target').value]]

  function take(from) {
    const limits = from.get('part') === 'log' ? from.getAll('limit') : []
    id('log-limits').value = limits.length ? limits.join('\n') : id('log-limits').value || first
    if (targets.includes(from.get('suggest'))) id('log-target').value = from.get('suggest')
  }

  function choose(chosen) {
    if (!chosen) return
    file = chosen
    asked = null
    id('log-save').hidden = true
    id('log-answer').replaceChildren(weir.element('p', { textContent: `${file.name}, ${weir.number(file.size)} bytes` }))
    ask({ suggest: id('log-target').value })
  }

  // ask has the program read the log, and shows what it says.
  async function ask(what) {
    if (!file) {
      problem(id('log-problem'), Object.assign(new Error('There is no log yet.'), { hints: ['drop one above, or choose it'] }))
      return
    }
    problem(id('log-problem'))
    const question = { do: 'log', name: file.name, key: id('log-key').value, format: id('log-format').value, ...what }
    try {
      const began = performance.now()
      const answer = await engine.ask('log', question, file)
      asked = what
      show(answer, performance.now() - began)
      id('log-save').hidden = false
    } catch (error) {
      if (error instanceof Stopped) id('log-answer').replaceChildren(weir.element('p', { textContent: 'Stopped.' }))
      else failed(error)
    }
  }

  function failed(error) {
    problem(id('log-problem'), error)
    if (error.unread?.length) id('log-problem').append(samples(error.unread))
  }

  async function save() {
    try {
      const { page } = await engine.ask('log', { do: 'log', name: file.name, key: id('log-key').value, format: id('log-format').value, ...asked, page: true, names: id('log-names').checked }, file)
      const link = weir.element('a', { href: URL.createObjectURL(new Blob([page], { type: 'text/html' })), download: 'weir-report.html' })
      link.click()
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
    } catch (error) {
      failed(error)
    }
  }

  function show({ report, suggestions, times, unread, part }, took) {
    const place = id('log-answer'), n = weir.number
    const counted = report.lines - report.unparsed
    const read = report.logs?.[0]
    place.replaceChildren(
      weir.element('p', { textContent: `${file.name}: ${n(report.lines)} lines, ${n(counted)} count, of ${n(report.keys)} values of ${id('log-key').value}${read ? `; read as ${read.format}, which ${read.why}` : ''}; in ${(took / 1000).toFixed(1)} s.` }))
    if (part) place.append(weir.element('p', { className: 'problem', textContent: part }))
    if (suggestions) suggested(place, suggestions)
    for (const [i, limit] of report.limits.entries()) tried(place, limit, times[i])
    if (report.difference) noticed(place, report.difference)
    if (unread?.length) left(place, report, unread)
  }

  function suggested(place, s) {
    place.append(weir.element('h3', { textContent: s.meaning }))
    for (const note of s.notes ?? []) place.append(weir.element('p', { textContent: note }))
    if (!s.proposed) return
    place.append(weir.element('p', { className: 'lead' }, weir.element('strong', { textContent: s.proposed.limit }), s.proposed.for_all ? ', one for all clients' : ''),
      weir.element('p', { textContent: s.proposed.why }))
    if (s.suggestions.length) place.append(table('Limits that do it', ['limit', 'requests refused', 'clients refused', 'the worst of them', 'its refusals'],
      s.suggestions.map(l => [l.limit, l.refused, l.keys_refused, l.worst_key?.key ?? '', l.worst_key?.refused ?? 0])))
  }

  function tried(place, l, t) {
    const all = l.admitted + l.refused
    place.append(weir.element('h3', { textContent: l.limit }),
      weir.element('p', { textContent: `It would have refused ${weir.number(l.refused)} of ${weir.number(all)} requests, and something to ${weir.number(l.keys_refused)} clients.` }))
    if (t?.admitted?.length) {
      const figure = weir.element('figure', {})
      place.append(figure)
      weir.chart(figure, { title: 'When it would have refused', answer: `Requests in steps of ${weir.number(t.every)} s, in UTC.`, time: true, stacked: true, height: 200,
        x: t.admitted.map((_, i) => t.first + i * t.every), flags: t.refused, unit: 'requests',
        series: [{ name: 'admitted', colour: 'admitted', area: true, values: t.admitted }, { name: 'refused', colour: 'refused', area: true, values: t.refused }] })
    }
    if (l.worst_keys.length === 0) return
    place.append(table('Who would notice most', ['client', 'requests', 'admitted', 'refused'], l.worst_keys.map(k => [k.key, k.admitted + k.refused, k.admitted, k.refused])),
      table('The worst minutes (UTC)', ['minute', 'requests', 'admitted', 'refused'], l.worst_minutes.map(m => [m.minute.slice(0, 16).replace('T', ' '), m.admitted + m.refused, m.admitted, m.refused])))
  }

  function noticed(place, d) {
    const n = weir.number
    place.append(weir.element('h3', { textContent: 'From the first limit to the second' }),
      weir.element('p', { textContent: `${n(d.only_first)} clients would be refused no longer, ${n(d.only_second)} newly, and ${n(d.both)} by both.` }),
      table('Who would notice the change', ['client', 'requests', 'refused by the first', 'by the second'], d.keys.map(k => [k.key, k.requests, k.first, k.second])))
  }

  function left(place, report, unread) {
    place.append(weir.element('h3', { textContent: `${weir.number(report.unparsed)} lines do not count` }),
      samples(unread))
  }

  const samples = unread => table('The first of them', ['line', 'why it does not count', 'text'], unread.map(u => [u.Line, `It ${u.Reason}`, u.Text]))

  // table shows rows of texts and numbers. What a log says becomes text: never markup, and no character that hides or turns others.
  function table(caption, heads, rows) {
    const cell = (kind, value) => typeof value === 'number' ? weir.element(kind, { textContent: weir.number(value), className: 'n' })
      : weir.element(kind, { className: 'key' }, weir.element('bdi', { textContent: value.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd') }))
    const t = weir.element('table', {}, weir.element('caption', { textContent: caption }),
      weir.element('thead', {}, weir.element('tr', {}, ...heads.map((h, i) => weir.element('th', { textContent: h, scope: 'col', className: typeof rows[0]?.[i] === 'number' ? 'n' : '' })))),
      weir.element('tbody', {}, ...rows.map(row => weir.element('tr', {}, ...row.map(value => cell('td', value))))))
    const box = weir.element('div', { className: 'rows', tabIndex: 0 }, t)
    box.setAttribute('role', 'region')
    box.setAttribute('aria-label', caption)
    return box
  }

  id('log-target').append(...targets.map(text => weir.element('option', { textContent: text })))
  id('log-limits').value = first
  for (const name of ['log-limits', 'log-target']) id(name).addEventListener('input', () => changed(settings()))
  id('file').addEventListener('change', () => choose(id('file').files[0]))
  id('log-try').addEventListener('click', () => ask({ tried: settings().filter(([name]) => name === 'limit').map(([, text]) => text) }))
  id('log-suggest').addEventListener('click', () => ask({ suggest: id('log-target').value }))
  id('log-save').addEventListener('click', save)
  const drop = id('drop'), over = is => event => { event.preventDefault(); drop.classList.toggle('over', is) }
  drop.addEventListener('dragover', over(true))
  drop.addEventListener('dragleave', over(false))
  drop.addEventListener('drop', event => { over(false)(event); choose(event.dataTransfer.files[0]) })
  return { settings, take, show() {} }
}
