'use strict'
// The program in a worker of its own, so that the page stays awake. It hears no message while it computes: who stops it ends it.
//
//   in:  {start: true, module?}           the compiled program, if another worker has made it
//        {id, question, file?}            JSON, and the log that it is about
//   out: {module}, {ready: true}, {id, answer}, {id, progress: {stage, done, of}}, {gone: text}
importScripts('wasm_exec.js')

const file = 'weir.wasm.gz'

// compile fetches the program. A server may have unpacked it on the way.
async function compile() {
  const response = await fetch(file)
  if (!response.ok) throw new Error(`${file}: ${response.status} ${response.statusText}`)
  let bytes = new Uint8Array(await response.arrayBuffer())
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
    bytes = new Uint8Array(await new Response(plain).arrayBuffer())
  }
  return WebAssembly.compile(bytes)
}

async function start(module) {
  if (typeof WebAssembly !== 'object') throw new Error('This browser runs no WebAssembly.')
  if (!module) postMessage({ module: module = await compile() })
  const go = new Go()
  self.weirReady = () => postMessage({ ready: true })
  const instance = await WebAssembly.instantiate(module, go.importObject)
  await go.run(instance)
  throw new Error('The program has ended, perhaps for lack of memory.')
}

// hostOf lends the program a file, in slices, and tells the page of its progress.
function hostOf(id, file) {
  const host = { progress: (stage, done, of) => postMessage({ id, progress: { stage, done, of } }) }
  if (!file) return host
  const reader = new FileReaderSync()
  let at = 0
  host.size = file.size
  host.read = (buffer, most) => {
    const slice = new Uint8Array(reader.readAsArrayBuffer(file.slice(at, at + most)))
    buffer.set(slice)
    at += slice.length
    return slice.length
  }
  return host
}

onmessage = ({ data }) => {
  if (data.start) {
    start(data.module).catch(error => postMessage({ gone: error.message }))
    return
  }
  try {
    postMessage({ id: data.id, answer: self.weirAnswer(data.question, hostOf(data.id, data.file)) })
  } catch (error) {
    postMessage({ gone: error.message })
  }
}
