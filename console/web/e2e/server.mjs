import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** Starts ronda (RONDA names the program) with arguments after serve; resolves to its address when it listens. */
export function serve(...args) {
  const child = spawn(process.env.RONDA ?? 'ronda', ['serve', '--addr', '127.0.0.1:0', ...args], { stdio: ['ignore', 'inherit', 'pipe'] });
  process.once('exit', () => child.kill('SIGKILL')); // also after a failure
  return new Promise((done, fail) => {
    child.once('exit', (code) => fail(new Error(`ronda serve ended with ${code}`)));
    child.once('error', fail);
    createInterface({ input: child.stderr }).on('line', (line) => {
      const at = line.match(/http:\/\/\S+/);
      if (at) done({ url: at[0], pid: child.pid, stop: () => new Promise((gone) => (child.removeAllListeners('exit'), child.once('exit', gone), child.kill('SIGTERM'))) });
      else console.error(line);
    });
  });
}
