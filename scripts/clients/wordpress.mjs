// A client of a WordPress site. It reads posts at an address with the two libraries that clients use,
// and prints what it got: the same for a site and for a feed of its posts.
import apiFetch from '@wordpress/api-fetch';
import WPAPI from 'wpapi';

const [address, ...orders] = process.argv.slice(2);
const wp = new WPAPI({ endpoint: new URL('/', address).href });
const posts = () => wp.url(address);
const print = (what, value) => console.log(what, JSON.stringify(value));
const refused = (what, promise) => promise.then((got) => print(what, got), (error) => print(what, error));

// Pages 1 to n by their numbers, with wpapi.
for (let page = 1, pages = 1; page <= pages; page++) {
  const got = await posts().page(page).perPage(4);
  pages = got._paging.totalPages;
  print(`wpapi, page ${page} of ${pages}, ${got._paging.total} posts`, [...got]);
}
// The same along the links, and back.
let request = posts().perPage(4);
let last;
while (request) {
  last = await request;
  print('wpapi, by links', [...last]);
  request = last._paging.next;
}
for (request = last._paging.prev; request; request = last._paging.prev) {
  last = await request;
  print('wpapi, back', last.map((post) => post.id));
}
print('wpapi, by default', (await posts()).map((post) => post.id));
print('wpapi, offset', (await posts().offset(5).perPage(3)).map((post) => post.id));
print('wpapi, fields', [...await posts().param('_fields', ['id', 'title.rendered']).perPage(2)]);
for (const order of orders) {
  print(`wpapi, ${order}`, (await posts().order(order).orderby('date').perPage(100)).map((post) => post.id));
}
await refused('wpapi, behind the end', posts().page(99).perPage(4));
await refused('wpapi, too many', posts().perPage(101));
await refused('wpapi, no number', posts().page('two'));
await refused('wpapi, edit', posts().context('edit'));

// The bytes, with api-fetch.
const url = (query) => address + (address.includes('?') ? '&' : '?') + query;
for (let page = 1, pages = 1; page <= pages; page++) {
  const answer = await apiFetch({ url: url(`page=${page}&per_page=4`), parse: false });
  pages = Number(answer.headers.get('X-WP-TotalPages'));
  console.log(`api-fetch, page ${page} of ${pages}, ${answer.headers.get('X-WP-Total')} posts\n${await answer.text()}|`);
}
const some = await apiFetch({ url: url('_fields=id,link,title&per_page=3'), parse: false });
console.log(`api-fetch, fields\n${await some.text()}|`);
print('api-fetch, all', (await apiFetch({ url: url('per_page=-1') })).map((post) => post.id));
await refused('api-fetch, behind the end', apiFetch({ url: url('page=99') }));
await refused('api-fetch, too many', apiFetch({ url: url('per_page=101') }));
