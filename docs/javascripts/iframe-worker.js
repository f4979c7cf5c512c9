// The search of the site runs in a worker, and a browser starts no worker for a page that was opened from a disk. There,
// a hidden frame does the worker's work: the same script, the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = async (...scripts) => {
        for (const script of scripts) await load(inside.document, script);
      };
      load(inside.document, url).then(() => {
        this.inside = inside;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }

    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
  };

  const load = (page, url) =>
    new Promise((done, failed) => {
      const script = page.createElement("script");
      Object.assign(script, { src: url, onload: done, onerror: failed });
      page.head.append(script);
    });
}
