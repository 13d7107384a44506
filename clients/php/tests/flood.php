<?php

/** Sends SENDS texts and prints the id of each. */

declare(strict_types=1);

require getcwd() . '/vendor/autoload.php';

$factory = new GuzzleHttp\Psr7\HttpFactory();
// On a connection that was used before cURL repeats a lost request by itself, and the client would have nothing to do.
$client = new GuzzleHttp\Client(['timeout' => 30, 'curl' => [CURLOPT_FORBID_REUSE => true]]);
$paloma = new Paloma\Paloma((string) getenv('BASE_URL'), (string) getenv('API_KEY'), $client, $factory);
for ($n = 0; $n < (int) getenv('SENDS'); $n++) {
    echo $paloma->sendText(['to' => (string) getenv('TO'), 'text' => "number {$n}"])['messageId'], "\n";
}
