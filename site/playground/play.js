// Play: limits on made-up traffic, in virtual time.
import { Course } from './course.js'

const id = name => document.getElementById(name)
const bursts = 'burst 20/s for 1500ms every 5s'

// The classic algorithms, all of five a second in the long run, on bursts that meet a boundary.
const classics = [
  ['Token bucket', 'token bucket 5/s burst 10', 'No window, so no boundary: it lets a burst through, and then one every 200 ms. After a pause the whole burst comes on top of the rate.'],
  ['Leaky bucket', 'leaky bucket 5/s queue 9', 'No window, so no boundary: it admits as many as the bucket, and lets one go every 200 ms. The others wait for their turn.'],
  ['Fixed window', 'fixed window 10/2s', 'A window begins at 6 s, in the midst of the second burst: ten go ahead before it, and ten at once after it. That is twice the limit within two seconds.'],
  ['Sliding window', 'sliding window 10/2s', 'It takes the last window to have been evenly filled. Its requests came at its end, so a few more than ten go ahead within two seconds.'],
  ['Sliding log', 'sliding log 10/2s', 'It remembers each request, so that no two seconds have more than ten, wherever they begin. That costs an entry for each.'],
]

const traffics = [
  ['Steady', 'constant 6/s'], ['Bursts', bursts], ['A storm of retries', 'storm 40 at 1s retry every 500ms'],
  ['A crawler', 'constant 2/s from 8 clients and constant 25/s from 1 clients'], ['Two tenants', 'constant 4/s from 1 clients and burst 40/s for 1s every 4s from 1 clients'],
]

const speeds = [-2, -1, 0, 1, 2, 3, 4, 5, 6].map(n => [n, 2 ** n])
const columns = 20
const first = { limit: ['fixed window 10/2s', 'sliding log 10/2s'], traffic: bursts, for: '10s', seed: '1', each: false }

export function play({ engine, problem, Stopped, changed }) {
  let courses = [], length = 0, now = 0, timer = 0, typed = 0

  const settings = () => {
    const all = [['limit', id('limit-0').value]]
    if (id('limit-1').value.trim()) all.push(['limit', id('limit-1').value])
    all.push(['traffic', id('traffic').value], ['for', id('for').value], ['seed', id('seed').value])
    if (id('each').checked) all.push(['each', '1'])
    return all
  }

  function take(from) {
    const limits = from.getAll('limit')
    id('limit-0').value = limits[0] ?? first.limit[0]
    id('limit-1').value = limits.length ? limits[1] ?? '' : first.limit[1]
    id('traffic').value = from.get('traffic') ?? first.traffic
    id('for').value = from.get('for') ?? first.for
    id('seed').value = /^[0-9]{1,15}$/.test(from.get('seed')) ? from.get('seed') : first.seed
    id('each').checked = from.get('each') === '1'
    run()
  }

  // run asks what the limits do, and shows it from its end.
  async function run() {
    stop()
    changed(settings())
    const limits = [id('limit-0'), id('limit-1')].filter((e, i) => i === 0 || e.value.trim())
    id('limit-1').value.trim() || problem(id('problem-1'))
    try {
      const explained = await Promise.all(limits.map((_, i) => explain(i)))
      if (explained.includes(null)) return
      const played = await engine.ask('play', { do: 'play', limits: explained, traffic: id('traffic').value, for: id('for').value, seed: Number(id('seed').value) || 0, each: id('each').checked })
      problem(id('problem-traffic'))
      mark(id('traffic'), false)
      show(played)
    } catch (error) {
      if (error instanceof Stopped) return
      problem(id('problem-traffic'), error)
      mark(id('traffic'), true)
    }
  }

  // explain checks the text of a limit, and returns the limit to play: of a rules file the first.
  async function explain(i) {
    const field = id(`limit-${i}`), place = id(`problem-${i}`)
    try {
      const checked = await engine.ask(`check-${i}`, { do: 'check', text: field.value }), { file } = checked
      mark(field, false)
      const before = place.querySelector('select'), focused = before && before === document.activeElement, open = place.querySelector('.words')?.open
      place.replaceChildren()
      if (file) place.append(choice(file, before?.value))
      if (focused) place.querySelector('select')?.focus()
      const chosen = file ? place.querySelector('select').value : field.value
      const { limits, together } = file && chosen !== file[0] ? await engine.ask(`check-${i}`, { do: 'check', text: chosen }) : checked
      place.append(Object.assign(words(limits, [together, ...checked.notes ?? []]), { open: open ?? false }))
      return chosen
    } catch (error) {
      if (error instanceof Stopped) throw error
      problem(place, error)
      mark(field, true)
      return null
    }
  }

  const mark = (field, wrong) => wrong ? field.setAttribute('aria-invalid', 'true') : field.removeAttribute('aria-invalid')

  // choice lets someone choose one of the limits of a rules file.
  function choice(file, before) {
    const select = weir.element('select', {}, ...file.map(text => weir.element('option', { textContent: text, value: text })))
    select.setAttribute('aria-label', 'which limit of the rules file')
    if (file.includes(before)) select.value = before
    select.addEventListener('change', run)
    return weir.element('p', {}, weir.element('label', { textContent: 'of these rules ' }, select))
  }

  function words(explained, notes) {
    const box = weir.element('details', { className: 'words' }, weir.element('summary', { textContent: explained.map(e => e.limit).join(' and ') }))
    for (const e of explained) for (const text of [e.capacity, e.burst, e.windows, e.worst, e.memory].filter(Boolean)) box.append(weir.element('p', { textContent: text }))
    for (const text of notes.filter(Boolean)) box.append(weir.element('p', { textContent: text }))
    return box
  }

  function show(played) {
    length = played.comparison.seconds
    id('courses').replaceChildren()
    courses = played.limits.map((course, i) => new Course(course, played.comparison.limits[i], length, id('each').checked))
    for (const c of courses) id('courses').append(c.figure)
    seek(length)
  }

  // seek shows what has happened until an instant.
  function seek(at) {
    now = Math.min(Math.max(at, 0), length)
    id('time').value = length ? Math.round(1000 * now / length) : 0
    id('time-text').textContent = `${now.toFixed(length < 100 ? 2 : 0)} s`
    for (const c of courses) c.draw(now)
  }

  const speed = () => 2 ** Number(id('speed').value)

  function start() {
    if (now >= length) seek(0)
    let last = performance.now()
    id('run').textContent = 'Pause'
    const step = at => {
      seek(now + (at - last) / 1000 * speed())
      last = at
      if (now >= length) stop()
      else timer = requestAnimationFrame(step)
    }
    timer = requestAnimationFrame(step)
  }

  function stop() {
    cancelAnimationFrame(timer)
    timer = 0
    id('run').textContent = 'Run'
  }

  const soon = () => { clearTimeout(typed); typed = setTimeout(run, 250) }
  const tellSpeed = () => { id('speed-text').textContent = `${speed()}×` }

  for (const [name, text, note] of classics) {
    id('classics').append(button(name, () => {
      id('limit-0').value = text
      id('limit-1').value = text.startsWith('sliding log') ? '' : 'sliding log 10/2s'
      Object.assign(id('traffic'), { value: bursts })
      Object.assign(id('for'), { value: '10s' })
      id('each').checked = false
      id('note').textContent = note
      run()
    }))
  }
  for (const [name, text] of traffics) {
    id('traffics').append(button(name, () => {
      id('traffic').value = text
      id('each').checked = name === 'Two tenants' || name === 'A crawler'
      run()
    }))
  }
  for (const name of ['limit-0', 'limit-1', 'traffic', 'for', 'seed']) id(name).addEventListener('input', () => { id('note').textContent = ''; soon() })
  id('each').addEventListener('change', run)
  id('run').addEventListener('click', () => timer ? stop() : start())
  id('speed').addEventListener('input', tellSpeed)
  id('time').addEventListener('input', () => { stop(); seek(length * id('time').value / 1000) })
  id('copy').addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(location.href)
      id('copied').textContent = 'Copied. It has these settings, and nothing of a log.'
    } catch {
      id('copied').textContent = 'The address of this page is the link.'
    }
  })
  bars(text => { id('traffic').value = text; id('each').checked = false; soon() }, () => id('for').value)
  tellSpeed()
  return { settings, take, show: () => courses.forEach(c => c.draw(now)) }
}

function button(name, pressed) {
  const b = weir.element('button', { type: 'button', textContent: name })
  b.addEventListener('click', pressed)
  return b
}

// bars lets someone draw traffic: a column is a number of requests at one instant, and its text is traffic like any.
function bars(drawn, lengthText) {
  const place = id('bars'), all = []
  for (let i = 0; i < columns; i++) {
    const bar = weir.element('input', { type: 'range', min: 0, max: 30, step: 1, value: 0 })
    bar.setAttribute('aria-label', `requests at step ${i + 1} of ${columns}`)
    bar.addEventListener('input', write)
    all.push(bar)
  }
  place.append(...all)
  const set = event => {
    const i = all.findIndex(bar => { const r = bar.getBoundingClientRect(); return event.clientX >= r.left - 1 && event.clientX <= r.right + 1 })
    if (i < 0) return
    const { top, height } = all[i].getBoundingClientRect()
    all[i].value = Math.round(30 * (1 - (event.clientY - top) / height))
    write()
  }
  place.addEventListener('pointerdown', event => { set(event); place.setPointerCapture(event.pointerId); event.preventDefault(); all[0].focus({ preventScroll: true }) })
  place.addEventListener('pointermove', event => { if (event.buttons) set(event) })
  id('retrying').addEventListener('change', write)

  function write() {
    const seconds = secondsOf(lengthText()), retry = id('retrying').checked ? ' retry every 1s' : ''
    const parts = all.flatMap((bar, i) => Number(bar.value) ? [`storm ${bar.value} at ${Math.round(1000 * seconds * i / columns)}ms${retry}`] : [])
    if (parts.length) drawn(parts.join(' and '))
  }
}

// secondsOf reads a duration well enough to place columns; the program reads it for good.
function secondsOf(text) {
  const units = { ms: 0.001, s: 1, m: 60, h: 3600 }
  let sum = 0
  for (const [, n, unit] of text.matchAll(/([0-9.]+)(ms|s|m|h)/g)) sum += n * units[unit]
  return sum > 0 && sum <= 86400 ? sum : 10
}
