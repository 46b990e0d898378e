// What the page asks the daemon. The token is here, in memory, and nowhere else.

let token = ''

/** show makes later requests show a token. */
export const show = text => { token = text }

function headers(more = {}) {
  return token ? { ...more, Authorization: `Bearer ${token}` } : more
}

/** Refusal is an answer that is no success. Its message is what the daemon says. */
export class Refusal extends Error {
  constructor(status, detail) {
    super(detail)
    this.status = status
  }
}

async function refusal(response) {
  const problem = await response.json().catch(() => ({}))
  return new Refusal(response.status, problem.detail || `${response.status} ${response.statusText}`)
}

/** ask makes a request: a GET, or a POST if there is a body. */
export async function ask(path, body) {
  const options = { headers: headers(), cache: 'no-store', credentials: 'omit' }
  if (body !== undefined) {
    options.method = 'POST'
    options.headers = headers({ 'Content-Type': 'application/json', 'Weir-Request': 'page' })
    options.body = JSON.stringify(body)
  }
  const response = await fetch(path, options)
  if (!response.ok) throw await refusal(response)
  return response.json()
}

// The stream counts as lost if nothing comes for this long.
const patience = 5_000

/** follow calls got with each message of the stream until it ends, and throws why it ended. */
export async function follow(got) {
  const stop = new AbortController()
  let timer
  const wait = () => {
    clearTimeout(timer)
    timer = setTimeout(() => stop.abort(new Error('the daemon has been silent for 5 s')), patience)
  }
  wait()
  try {
    const response = await fetch('v1/admin/live', { headers: headers({ Accept: 'text/event-stream' }), cache: 'no-store', credentials: 'omit', signal: stop.signal })
    if (!response.ok) throw await refusal(response)
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let text = ''; ;) {
      const { value, done } = await reader.read()
      if (done) throw new Error('the daemon has closed the stream')
      wait()
      const events = (text + value).split('\n\n')
      text = events.pop()
      for (const event of events) {
        const data = event.split('\n').filter(l => l.startsWith('data:')).map(l => l.slice(5)).join('\n')
        if (data) got(JSON.parse(data))
      }
    }
  } finally {
    clearTimeout(timer)
    stop.abort()
  }
}
