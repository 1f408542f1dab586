'use strict';
// The pages work without this: it adds a button that copies each block of code, and one that sends the request of an
// example to this engine. The app and the key stay in the memory of the page.
(() => {
  const button = (text, act) => {
    const b = document.createElement('button');
    b.type = 'button';
    b.textContent = text;
    b.addEventListener('click', () => act(b));
    return b;
  };
  const credentials = { app: '', key: '' };

  const field = (name, kind, value) => {
    const label = document.createElement('label');
    const input = document.createElement(kind === 'textarea' ? kind : 'input');
    if (kind !== 'textarea') input.type = kind;
    input.value = value;
    input.autocomplete = 'off';
    input.spellcheck = false;
    label.append(name, input);
    return { label, input };
  };

  function tryIt(pre) {
    const { method, path, header, body } = pre.dataset;
    const form = document.createElement('form');
    form.className = 'try';
    const app = field('App', 'text', credentials.app), key = field('Key', 'password', credentials.key);
    const to = field(method, 'text', path), sent = field('Body', 'textarea', body);
    const answer = document.createElement('pre');
    answer.tabIndex = 0;
    answer.setAttribute('aria-live', 'polite');
    const send = document.createElement('button');
    send.textContent = 'Send to ' + location.host;
    form.append(app.label, key.label, to.label);
    if (body) form.append(sent.label);
    form.append(send, answer);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      credentials.app = app.input.value;
      credentials.key = key.input.value;
      if (!to.input.value.startsWith('/')) {
        answer.textContent = 'The path begins with /.';
        return;
      }
      const headers = { 'X-Algolia-Application-Id': credentials.app, 'X-Algolia-API-Key': credentials.key };
      const [name, value] = header.split(': ');
      if (value) headers[name] = value;
      try {
        const r = await fetch(location.origin + to.input.value, { method, headers, body: body ? sent.input.value : undefined, redirect: 'error' });
        const text = await r.text();
        answer.textContent = r.status + '\n' + text;
      } catch (failed) {
        answer.textContent = 'No answer: ' + failed.message;
      }
    });
    pre.parentElement.after(form);
    app.input.focus();
    return form;
  }

  for (const pre of document.querySelectorAll('main pre')) {
    const bar = document.createElement('div');
    bar.className = 'bar';
    pre.before(bar);
    bar.append(pre);
    const tools = document.createElement('span');
    tools.className = 'tools';
    if (!pre.classList.contains('answer')) {
      tools.append(button('Copy', async (b) => {
        try {
          await navigator.clipboard.writeText(pre.textContent.replace(/^\$ /gm, ''));
          b.textContent = 'Copied';
        } catch {
          getSelection().selectAllChildren(pre);
          b.textContent = 'Selected';
        }
        setTimeout(() => { b.textContent = 'Copy'; }, 2000);
      }));
    }
    if (pre.dataset.method) {
      let form;
      tools.append(button('Try it', (b) => {
        if (form) {
          form.remove();
          form = undefined;
        } else {
          form = tryIt(pre);
        }
        b.setAttribute('aria-expanded', String(Boolean(form)));
      }));
    }
    bar.append(tools);
  }
})();
